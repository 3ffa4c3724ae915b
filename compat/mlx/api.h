// How MLX marks what its library exports; here a program decides with its own flags.
#pragma once

#ifndef MLX_API
#define MLX_API
#endif
