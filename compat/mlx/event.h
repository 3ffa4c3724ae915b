#pragma once

#include <holdfast/event.h>

#include "mlx/core.h"
