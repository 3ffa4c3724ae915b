#pragma once
#include "../shared/beside.metal"
inline float inner(float x) { return x * beside; }
