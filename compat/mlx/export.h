#pragma once

#include <set>

#include <holdfast/export.h>

#include "mlx/core.h"
#include "mlx/io/load.h"
