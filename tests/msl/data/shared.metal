#pragma once
inline float shared_scale(float x) { return x * 0.25; }
