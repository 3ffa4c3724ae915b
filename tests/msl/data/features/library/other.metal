#pragma once
inline float other(float x) { return x * 0.25; }
