// What a .metal file may include, precompiled: it includes <metal_stdlib> and says `using namespace
// metal` itself.
#pragma once

#include <metal_atomic>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
#include <metal_stdlib>

#include <holdfast/instantiate.h>
