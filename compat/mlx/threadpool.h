#pragma once

#include "mlx/io/load.h"
