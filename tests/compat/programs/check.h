// A test without a framework: these are programs as users write them.
#pragma once

#include <cstdlib>
#include <iostream>

#define CHECK(...)                                                                          \
  do {                                                                                      \
    if (!(__VA_ARGS__)) {                                                                   \
      std::cerr << __FILE__ << ":" << __LINE__ << ": not true: " #__VA_ARGS__ << std::endl; \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (false)
