#include "../shared.metal"
inline float deep(float x) { return shared_scale(x) + missing_name; }
