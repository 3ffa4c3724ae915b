#include "device_types.h"

#include <memory>
#include <new>
#include <sstream>

#include <holdfast/device.h>
#include <holdfast/metal.h>

#include "arguments.h"

namespace holdfast::python {

namespace {

// A Python object around a value. The four types differ only in what T is.
template <typename T>
struct ValueObject {
  PyObject_HEAD T value;
};
template <typename T>
PyTypeObject* value_type = nullptr;
template <typename T>
T& held(PyObject* object) {
  return reinterpret_cast<ValueObject<T>*>(object)->value;
}
template <typename T>
PyObject* make(PyTypeObject* type, T value) {
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Object object = Object::steal(allocate(type, 0));
  new (&held<T>(object.get())) T(std::move(value));
  return object.release();
}
template <typename T>
void destroy(PyObject* self) {
  held<T>(self).~T();
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// The members of DeviceType, set once by the package.
PyObject* device_kinds[2] = {nullptr, nullptr};

std::optional<Device> device_from(PyObject* object) {
  if (Py_TYPE(object) == value_type<Device>) return held<Device>(object);
  if (object == device_kinds[0]) return Device(Device::cpu);
  if (object == device_kinds[1]) return Device(Device::gpu);
  return std::nullopt;
}

Device device_at(const Arguments& arguments, int place) {
  std::optional<Device> device = device_from(arguments.object(place));
  if (!device) arguments.refuse(place, "a Device or a DeviceType");
  return *device;
}

template <typename T>
PyObject* text(PyObject* self) {
  return guarded([&] {
    std::ostringstream out;
    if constexpr (std::is_same_v<T, ThreadLocalStream>) out << "ThreadLocal";
    out << held<T>(self);
    return PyUnicode_FromString(out.str().c_str());
  });
}

template <typename T>
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  bool equal = Py_TYPE(b) == value_type<T> && held<T>(a) == held<T>(b);
  if constexpr (std::is_same_v<T, Device>) {
    if (std::optional<Device> other = device_from(b)) equal = held<T>(a) == *other;
  }
  return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t hash_device(PyObject* self) {
  return static_cast<Py_hash_t>(held<Device>(self).type) * 64 + held<Device>(self).index;
}
template <typename T>
Py_hash_t hash_stream(PyObject* self) {
  return held<T>(self).index;
}

PyObject* new_device(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject* kind = nullptr;
  int index = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|i", const_cast<char**>(names), &kind,
                                   &index)) {
    return nullptr;
  }
  return guarded([&] {
    std::optional<Device> device = device_from(kind);
    if (!device || Py_TYPE(kind) == value_type<Device>) {
      raise(PyExc_TypeError, "[Device] type must be a DeviceType, got " + type_name(kind));
    }
    return make(type, Device(device->type, index));
  });
}

PyObject* device_kind(PyObject* self, void*) {
  return Py_NewRef(device_kinds[held<Device>(self).type == Device::gpu]);
}
PyObject* device_index(PyObject* self, void*) { return PyLong_FromLong(held<Device>(self).index); }
template <typename T>
PyObject* stream_device(PyObject* self, void*) {
  return guarded([&] { return make(value_type<Device>, held<T>(self).device); });
}

// What `with stream(s):` holds; the context begins with __enter__.
struct Context {
  StreamOrDevice target;
  std::unique_ptr<StreamContext> scope;
};

PyObject* new_context(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* target = nullptr;
  if (!PyArg_ParseTuple(arguments, "O", &target)) return nullptr;
  return guarded([&] {
    std::optional<StreamOrDevice> stream = stream_from(target);
    if (!stream) {
      raise(PyExc_TypeError,
            "[stream] expected a Stream, a Device or a DeviceType, got " + type_name(target));
    }
    return make(type, Context{*stream, nullptr});
  });
}
PyObject* enter_context(PyObject* self, PyObject*) {
  return guarded([&] {
    Context& context = held<Context>(self);
    context.scope = std::make_unique<StreamContext>(context.target);
    return give_none();
  });
}
PyObject* exit_context(PyObject* self, PyObject*) {
  held<Context>(self).scope.reset();
  return give_none();
}
PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "streams are made by new_stream");
  return nullptr;
}

template <typename F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

template <typename T>
void add_type(PyObject* module, PyType_Spec& spec) {
  value_type<T> = reinterpret_cast<PyTypeObject*>(Object::steal(PyType_FromSpec(&spec)).release());
  Object name = Object::steal(PyType_GetName(value_type<T>));
  PyModule_AddObjectRef(module, text_of(name.get()).c_str(),
                        reinterpret_cast<PyObject*>(value_type<T>));
}

PyGetSetDef device_properties[] = {
    {"type", device_kind, nullptr, "cpu or gpu.", nullptr},
    {"index", device_index, nullptr, "Which one of its type.", nullptr},
    {}};
PyType_Slot device_slots[] = {
    {Py_tp_doc, const_cast<char*>("Device(type, index=0)\n--\n\nWhere ops run.")},
    {Py_tp_new, slot(new_device)},
    {Py_tp_dealloc, slot(destroy<Device>)},
    {Py_tp_repr, slot(text<Device>)},
    {Py_tp_hash, slot(hash_device)},
    {Py_tp_richcompare, slot(compare<Device>)},
    {Py_tp_getset, device_properties},
    {}};
PyType_Spec device_spec = {"holdfast.core.Device", sizeof(ValueObject<Device>), 0,
                           Py_TPFLAGS_DEFAULT, device_slots};

template <typename T>
PyGetSetDef stream_properties[] = {
    {"device", stream_device<T>, nullptr, "The device that it belongs to.", nullptr}, {}};
template <typename T>
PyType_Slot stream_slots[] = {
    {Py_tp_doc, const_cast<char*>("An ordered queue of work on a device.")},
    {Py_tp_new, slot(refuse_new)},
    {Py_tp_dealloc, slot(destroy<T>)},
    {Py_tp_repr, slot(text<T>)},
    {Py_tp_hash, slot(hash_stream<T>)},
    {Py_tp_richcompare, slot(compare<T>)},
    {Py_tp_getset, stream_properties<T>},
    {}};
PyType_Spec stream_spec = {"holdfast.core.Stream", sizeof(ValueObject<Stream>), 0,
                           Py_TPFLAGS_DEFAULT, stream_slots<Stream>};
PyType_Spec thread_local_spec = {"holdfast.core.ThreadLocalStream",
                                 sizeof(ValueObject<ThreadLocalStream>), 0, Py_TPFLAGS_DEFAULT,
                                 stream_slots<ThreadLocalStream>};

PyMethodDef context_methods[] = {{"__enter__", enter_context, METH_NOARGS, nullptr},
                                 {"__exit__", exit_context, METH_VARARGS, nullptr},
                                 {}};
PyType_Slot context_slots[] = {
    {Py_tp_doc, const_cast<char*>("StreamContext(s)\n--\n\nMakes a stream the default, in a with "
                                  "statement.")},
    {Py_tp_new, slot(new_context)},
    {Py_tp_dealloc, slot(destroy<Context>)},
    {Py_tp_methods, context_methods},
    {}};
PyType_Spec context_spec = {"holdfast.core.StreamContext", sizeof(ValueObject<Context>), 0,
                            Py_TPFLAGS_DEFAULT, context_slots};

PyObject* give_info(
    const std::unordered_map<std::string, std::variant<std::string, size_t>>& info) {
  Object dictionary = Object::steal(PyDict_New());
  for (const auto& [key, value] : info) {
    Object item = Object::steal(value.index() == 0
                                    ? PyUnicode_FromString(std::get<std::string>(value).c_str())
                                    : PyLong_FromSize_t(std::get<size_t>(value)));
    PyDict_SetItemString(dictionary.get(), key.c_str(), item.get());
  }
  return dictionary.release();
}

constexpr Row rows[] = {
    {"_set_device_types", "(cpu, gpu)", "For the package itself.", "",
     [](Arguments& a) {
       for (int i = 0; i < 2; ++i) device_kinds[i] = Py_NewRef(a.object(i));
       return give_none();
     }},
    {"default_device", "()", "The device that ops run on when none is named.",
     "mx.default_device()",
     [](Arguments&) { return make(value_type<Device>, Device(default_device())); }},
    {"set_default_device", "(device)", "Makes a device the default of the process.",
     "mx.set_default_device(mx.default_device())",
     [](Arguments& a) {
       set_default_device(device_at(a, 0));
       return give_none();
     }},
    {"is_available", "(device)", "Can ops run on this device?", "mx.is_available(mx.cpu)",
     [](Arguments& a) { return PyBool_FromLong(is_available(device_at(a, 0))); }},
    {"device_count", "(device_type)", "How many devices of a type there are.",
     "mx.device_count(mx.cpu)",
     [](Arguments& a) { return PyLong_FromLong(device_count(device_at(a, 0).type)); }},
    {"device_info", "(d=None)", "What is known about a device, as a dict.",
     "sorted(mx.device_info(mx.cpu))[:2]",
     [](Arguments& a) {
       return give_info(device_info(a.is_none(0) ? default_device() : device_at(a, 0)));
     }},
    {"_metal_device_info", "()", "For the package itself.", "",
     [](Arguments&) { return give_info(metal::device_info()); }},
    {"default_stream", "(device)", "The calling thread's stream on a device.",
     "mx.default_stream(mx.cpu).device",
     [](Arguments& a) { return new_stream_object(default_stream(device_at(a, 0))); }},
    {"set_default_stream", "(stream)",
     "Makes a stream the calling thread's default on the stream's device.",
     "mx.set_default_stream(mx.default_stream(mx.cpu))",
     [](Arguments& a) {
       if (Py_TYPE(a.object(0)) != value_type<Stream>) a.refuse(0, "a Stream");
       set_default_stream(held<Stream>(a.object(0)));
       return give_none();
     }},
    {"new_stream", "(device)", "A new stream. Any thread may use it.",
     "mx.new_stream(mx.cpu).device",
     [](Arguments& a) { return new_stream_object(new_stream(device_at(a, 0))); }},
    {"new_thread_unsafe_stream", "(device)",
     "The same as new_stream: every stream here may be used from any thread.",
     "mx.new_thread_unsafe_stream(mx.cpu).device",
     [](Arguments& a) { return new_stream_object(new_thread_unsafe_stream(device_at(a, 0))); }},
    {"new_thread_local_stream", "(device)", "A stream that is another one in each thread.",
     "mx.new_thread_local_stream(mx.cpu).device",
     [](Arguments& a) {
       return make(value_type<ThreadLocalStream>, new_thread_local_stream(device_at(a, 0)));
     }},
    {"stream", "(s)", "A context in which a stream, or a device, is the default.",
     "mx.stream(mx.cpu)",
     [](Arguments& a) {
       std::optional<StreamOrDevice> stream = stream_from(a.object(0));
       if (!stream) a.refuse(0, "a Stream, a Device or a DeviceType");
       return make(value_type<Context>, Context{*stream, nullptr});
     }},
    {"synchronize", "(stream=None)",
     "Waits for everything submitted to a stream, and raises the first error nobody has seen.",
     "mx.synchronize()\nmx.synchronize(mx.cpu)",
     [](Arguments& a) {
       StreamOrDevice stream = a.stream(0);
       {
         WithoutGil released;
         synchronize(to_stream(stream));
       }
       return give_none();
     }},
    {"clear_streams", "()", "Waits for the calling thread's streams and gives them back.",
     "mx.clear_streams()",
     [](Arguments&) {
       {
         WithoutGil released;
         clear_streams();
       }
       return give_none();
     }},
};

}  // namespace

std::optional<StreamOrDevice> stream_from(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == value_type<Stream>) return held<Stream>(object);
  if (type == value_type<ThreadLocalStream>) return held<ThreadLocalStream>(object);
  if (std::optional<Device> device = device_from(object)) return *device;
  return std::nullopt;
}

PyObject* new_stream_object(const Stream& stream) { return make(value_type<Stream>, stream); }

void add_device_types(PyObject* module) {
  add_type<Device>(module, device_spec);
  add_type<Stream>(module, stream_spec);
  add_type<ThreadLocalStream>(module, thread_local_spec);
  add_type<Context>(module, context_spec);
  add_rows<rows>(module);
}

}  // namespace holdfast::python
