/* A binding as other languages use one: handles that are freed, functions as handles. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define API __attribute__((visibility("default")))

typedef struct binding_array_* binding_array;
typedef struct binding_closure_* binding_closure;
/* Reads `count` arrays, writes one; 0 when it went well. */
typedef int (*binding_function)(binding_array* result, const binding_array* inputs, int count,
                                void* payload);

API binding_array binding_new(const float* data, int size);
API binding_array binding_copy(binding_array a);
API void binding_free(binding_array a);
API int binding_read(binding_array a, float* data, int size);
/* Starts the computation. */
API int binding_start(binding_array a);
API const char* binding_error(void);

API binding_array binding_multiply(binding_array a, binding_array b);
API binding_array binding_sum(binding_array a);
API binding_array binding_attention(binding_array q, binding_array k, binding_array v);
API binding_array binding_custom_kernel(binding_array a, int times);
API binding_array binding_file_kernel(const char* folder, binding_array a);

API binding_closure binding_closure_new(binding_function function, void* payload,
                                        void (*destroy)(void*));
API void binding_closure_free(binding_closure closure);
API binding_array binding_closure_apply(binding_closure closure, binding_array a);
/* The gradient of the function, as a function; and of one whose vjp is `rule`, which gets input,
 * cotangent and output. */
API binding_closure binding_grad(binding_closure closure);
API binding_closure binding_custom_vjp(binding_closure closure, binding_closure rule);

API int binding_export(const char* file);
API binding_array binding_call_imported(const char* file, const char* name, binding_array a,
                                        binding_array scale);

#ifdef __cplusplus
}
#endif
