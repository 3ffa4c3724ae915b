// Quoted names are looked for beside the file that says them, then in the folders of -I; names in
// angles in those folders.
#include <metal_stdlib>
#include "library/outer.metal"
#include <library/other.metal>
using namespace metal;

kernel void included(device uint* ok [[buffer(0)]]) { ok[0] = outer(2.0) == 8.5 && other(4.0) == 1; }
