#pragma once
#include <library/other.metal>
#include "inner.metal"
inline float outer(float x) { return inner(x) + other(x); }
