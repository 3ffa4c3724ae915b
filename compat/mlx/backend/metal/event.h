#pragma once

#include "mlx/event.h"
