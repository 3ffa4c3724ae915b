#pragma once
// Literals of this file move what follows them: 0.5
inline float mixed(bfloat b) { return 0.25 * float(half(b)) + float(half(0.5bf)); }
