// What MLX puts before a custom kernel.
#pragma once

#include <metal_atomic>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;
#include <holdfast/mlx_helpers.h>

#include <holdfast/instantiate.h>
