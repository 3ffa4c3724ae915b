// Thousands of errors, each of which the compiler has to come back from.
#define E4 metal; metal; metal; metal;
#define E16 E4 E4 E4 E4
#define E64 E16 E16 E16 E16
#define E256 E64 E64 E64 E64
#define E1024 E256 E256 E256 E256
#define E4096 E1024 E1024 E1024 E1024
E4096
E4096
E4096
kernel void k() {}
