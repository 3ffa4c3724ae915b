#if 1
#define kernel
R"x(