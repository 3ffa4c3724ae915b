// Memory, compilation switches, types, text: what is no op.
#include <holdfast/memory.h>

#include <sstream>

#include <holdfast/compile.h>
#include <holdfast/distributed.h>
#include <holdfast/graph_utils.h>
#include <holdfast/metal.h>
#include <holdfast/utils.h>
#include <holdfast/version.h>

#include "arguments.h"
#include "array_type.h"
#include "dtype_type.h"
#include "ops.h"

namespace holdfast::python {

namespace {

template <size_t (*function)()>
PyObject* read_size(Arguments&) {
  return PyLong_FromSize_t(function());
}
template <size_t (*function)(size_t)>
PyObject* set_size(Arguments& a) {
  return PyLong_FromSize_t(function(a.size(0)));
}
template <void (*function)()>
PyObject* act(Arguments&) {
  {
    WithoutGil released;
    function();
  }
  return give_none();
}

constexpr Row rows[] = {
    {"get_active_memory", "()", "Bytes held by arrays and by work in flight.",
     "mx.get_active_memory() >= 0", read_size<&get_active_memory>},
    {"get_peak_memory", "()", "The most bytes held since the start or the last reset.",
     "mx.get_peak_memory() >= 0", read_size<&get_peak_memory>},
    {"reset_peak_memory", "()", "Starts a new measurement of the peak.", "mx.reset_peak_memory()",
     act<&reset_peak_memory>},
    {"get_cache_memory", "()", "Bytes kept for reuse.", "mx.get_cache_memory() >= 0",
     read_size<&get_cache_memory>},
    {"get_memory_limit", "()", "The limit on the bytes that arrays hold.",
     "mx.get_memory_limit() > 0", read_size<&get_memory_limit>},
    {"set_memory_limit", "(limit)", "Sets the limit; returns the one before.",
     "mx.set_memory_limit(mx.get_memory_limit()) > 0", set_size<&set_memory_limit>},
    {"set_cache_limit", "(limit)", "Sets the limit of the cache; returns the one before.",
     "mx.set_cache_limit(mx.set_cache_limit(1 << 30)) == 1 << 30", set_size<&set_cache_limit>},
    {"set_wired_limit", "(limit)", "Sets how much memory stays resident; returns the limit before.",
     "mx.set_wired_limit(0)", set_size<&set_wired_limit>},
    {"clear_cache", "()", "Gives cached memory back to the system.", "mx.clear_cache()",
     act<&clear_cache>},
    {"get_array_buffer_size", "(*args)", "Bytes of the buffers that hold evaluated arrays.",
     "mx.get_array_buffer_size(mx.array([1, 2])) > 0",
     [](Arguments& a) {
       size_t total = 0;
       for (const array& x : a.rest_arrays()) {
         if (x.status() == array::unscheduled) {
           raise(PyExc_ValueError, "[get_array_buffer_size] expected arrays that are evaluated");
         }
         total += x.buffer_size();
       }
       return PyLong_FromSize_t(total);
     }},
    {"disable_compile", "()", "From now on compiled functions call what they were made from.",
     "mx.disable_compile()", act<&disable_compile>},
    {"enable_compile", "()", "Undoes disable_compile.", "mx.enable_compile()",
     act<&enable_compile>},
    {"_set_precision", "(precision)", "For the package itself.", "",
     [](Arguments& a) {
       set_printoptions({a.integer(0)});
       return give_none();
     }},
    {"_start_capture", "(path, contents, digests, reference_files)", "For the package itself.", "",
     [](Arguments& a) {
       metal::CaptureOptions options;
       options.contents = a.truth(1);
       options.digests = a.truth(2);
       options.reference_files = a.truth(3);
       std::string path = a.text(0);
       {
         WithoutGil released;
         metal::start_capture(path, options);
       }
       return give_none();
     }},
    {"_stop_capture", "()", "For the package itself.", "", act<&metal::stop_capture>},
    {"_metal_is_available", "()", "For the package itself.", "",
     [](Arguments&) { return PyBool_FromLong(metal::is_available()); }},
    {"_issubdtype", "(dtype, category)", "For the package itself: a dtype and a category's number.",
     "",
     [](Arguments& a) {
       return PyBool_FromLong(issubdtype(a.dtype(0), static_cast<Dtype::Category>(a.integer(1))));
     }},
    {"_issubcategory", "(category, other)", "For the package itself.", "",
     [](Arguments& a) {
       return PyBool_FromLong(issubdtype(static_cast<Dtype::Category>(a.integer(0)),
                                         static_cast<Dtype::Category>(a.integer(1))));
     }},
    {"_finfo", "(dtype)", "For the package itself.", "",
     [](Arguments& a) {
       finfo info(a.dtype(0));
       return Py_BuildValue("(idddd)", info.bits, info.min, info.max, info.eps,
                            info.smallest_normal);
     }},
    {"_iinfo", "(dtype)", "For the package itself.", "",
     [](Arguments& a) {
       iinfo info(a.dtype(0));
       return Py_BuildValue("(LK)", static_cast<long long>(info.min),
                            static_cast<unsigned long long>(info.max));
     }},
    {"_graph_text", "(arrays, names, dot)", "For the package itself.", "",
     [](Arguments& a) {
       NodeNamer namer;
       Py_ssize_t position = 0;
       PyObject *name, *value;
       while (PyDict_Next(a.object(1), &position, &name, &value)) {
         if (is_array(value)) namer.set_name(value_of(value), text_of(name));
       }
       std::ostringstream out;
       if (a.truth(2))
         export_to_dot(out, std::move(namer), a.arrays(0));
       else
         print_graph(out, std::move(namer), a.arrays(0));
       return PyUnicode_FromString(out.str().c_str());
     }},
    {"_split_group", "(color, key)", "For the package itself.", "",
     [](Arguments& a) {
       distributed::init().split(a.integer(0), a.integer(1));
       return give_none();
     }},
    {"_init_group", "(strict, backend)", "For the package itself.", "",
     [](Arguments& a) {
       distributed::init(a.truth(0), a.text(1));
       return give_none();
     }},
    {"_group_available", "(backend)", "For the package itself.", "",
     [](Arguments& a) {
       std::string backend = a.text(0);
       return PyBool_FromLong(backend == "any" ? distributed::is_available()
                                               : distributed::is_available(backend));
     }},
    {"_share", "(object, dtype)",
     "For the package itself: an array over a buffer's memory, or None.", "",
     [](Arguments& a) {
       PyObject* object = a.object(0);
       if (!PyObject_CheckBuffer(object)) return give_none();
       std::optional<array> shared = array_from_buffer(object, a.optional_dtype(1), true);
       return shared ? give(std::move(*shared)) : give_none();
     }},
    {"_from_dlpack", "(capsule)", "For the package itself.", "",
     [](Arguments& a) { return give(from_dlpack_capsule(a.object(0))); }},
    {"_version", "()", "For the package itself.", "",
     [](Arguments&) { return PyUnicode_FromString(version()); }},
};

}  // namespace

void add_memory(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
