#pragma once

#include "mlx/io.h"
