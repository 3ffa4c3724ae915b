#pragma once

constant int factors[2] = {3, 4};
#define SCALED(x, i) ((x) * factors[i])
