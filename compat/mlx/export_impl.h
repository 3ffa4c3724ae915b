#pragma once

#include "mlx/export.h"
