// Reading and writing of files: names of files go to the library; file objects of Python's go
// through memory, so that no worker ever needs the GIL.
#include <holdfast/io.h>

#include <cstring>

#include "arguments.h"
#include "array_type.h"
#include "base/replaced_file.h"
#include "io/memory_reader.h"
#include "ops.h"

namespace holdfast::python {

namespace {

class MemoryWriter : public io::Writer {
 public:
  bool is_open() const override { return true; }
  bool good() const override { return true; }
  size_t tell() override { return position_; }
  void seek(int64_t offset, std::ios_base::seekdir way) override {
    int64_t base = way == std::ios_base::beg   ? 0
                   : way == std::ios_base::cur ? static_cast<int64_t>(position_)
                                               : static_cast<int64_t>(bytes.size());
    position_ = static_cast<size_t>(base + offset);
  }
  void write(const char* data, size_t n) override {
    if (position_ + n > bytes.size()) bytes.resize(position_ + n);
    std::memcpy(bytes.data() + position_, data, n);
    position_ += n;
  }
  std::string label() const override { return "a file object"; }

  std::string bytes;

 private:
  size_t position_ = 0;
};

std::vector<char> bytes_of(PyObject* object) {
  char* data = nullptr;
  Py_ssize_t length = 0;
  if (PyBytes_AsStringAndSize(object, &data, &length) != 0) throw PythonError();
  return {data, data + length};
}

// The source is a name (str) or contents (bytes).
template <typename FromName, typename FromReader>
auto load_from(Arguments& a, const FromName& from_name, const FromReader& from_reader) {
  StreamOrDevice s = a.stream(1);
  if (PyBytes_Check(a.object(0))) {
    auto reader = std::make_shared<io::MemoryReader>(bytes_of(a.object(0)), "a file object");
    WithoutGil released;
    return from_reader(reader, s);
  }
  std::string name = a.text(0);
  WithoutGil released;
  return from_name(name, s);
}

Object dictionary_of(std::unordered_map<std::string, array> arrays) {
  Object result = Object::steal(PyDict_New());
  for (auto& [name, value] : arrays) {
    Object item = Object::steal(new_array(value));
    PyDict_SetItemString(result.get(), name.c_str(), item.get());
  }
  return result;
}

std::unordered_map<std::string, array> arrays_of(Arguments& a, int place) {
  if (!PyDict_Check(a.object(place))) a.refuse(place, "a dict of arrays");
  std::unordered_map<std::string, array> arrays;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(a.object(place), &position, &key, &value)) {
    if (!PyUnicode_Check(key) || !is_array(value)) a.refuse(place, "a dict of arrays by name");
    arrays.emplace(text_of(key), value_of(value));
  }
  return arrays;
}

PyObject* save_array(Arguments& a) {
  array value = a.array_at(1);
  if (a.is_none(0)) {
    auto writer = std::make_shared<MemoryWriter>();
    {
      WithoutGil released;
      save(writer, value);
    }
    return PyBytes_FromStringAndSize(writer->bytes.data(),
                                     static_cast<Py_ssize_t>(writer->bytes.size()));
  }
  std::string name = a.text(0);
  {
    WithoutGil released;
    save(name, value);
  }
  return give_none();
}

PyObject* save_tensors(Arguments& a) {
  std::unordered_map<std::string, array> arrays = arrays_of(a, 1);
  std::unordered_map<std::string, std::string> metadata;
  if (!a.is_none(2)) {
    if (!PyDict_Check(a.object(2))) a.refuse(2, "a dict of str");
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(a.object(2), &position, &key, &value)) {
      metadata.emplace(text_of(key), text_of(value));
    }
  }
  if (a.is_none(0)) {
    auto writer = std::make_shared<MemoryWriter>();
    {
      WithoutGil released;
      save_safetensors(writer, std::move(arrays), std::move(metadata));
    }
    return PyBytes_FromStringAndSize(writer->bytes.data(),
                                     static_cast<Py_ssize_t>(writer->bytes.size()));
  }
  std::string name = a.text(0);
  {
    WithoutGil released;
    save_safetensors(name, std::move(arrays), std::move(metadata));
  }
  return give_none();
}

PyObject* load_tensors(Arguments& a) {
  SafetensorsLoad loaded = load_from(
      a, [](const std::string& name, StreamOrDevice s) { return load_safetensors(name, s); },
      [](auto reader, StreamOrDevice s) { return load_safetensors(reader, s); });
  Object arrays = dictionary_of(std::move(loaded.first));
  Object metadata = Object::steal(PyDict_New());
  for (const auto& [key, value] : loaded.second) {
    Object text = Object::steal(PyUnicode_FromString(value.c_str()));
    PyDict_SetItemString(metadata.get(), key.c_str(), text.get());
  }
  return PyTuple_Pack(2, arrays.get(), metadata.get());
}

Object metadata_object(const GGUFMetaData& value) {
  if (const auto* a = std::get_if<array>(&value)) return Object::steal(new_array(*a));
  if (const auto* text = std::get_if<std::string>(&value)) {
    return Object::steal(PyUnicode_FromString(text->c_str()));
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    Object list = Object::steal(PyList_New(0));
    for (const std::string& text : *texts) {
      PyList_Append(list.get(), Object::steal(PyUnicode_FromString(text.c_str())).get());
    }
    return list;
  }
  return Object::borrow(Py_None);
}

PyObject* load_quantised(Arguments& a) {
  GGUFLoad loaded = load_from(
      a, [](const std::string& name, StreamOrDevice s) { return load_gguf(name, s); },
      [](auto reader, StreamOrDevice s) { return load_gguf(reader, s); });
  Object arrays = dictionary_of(std::move(loaded.first));
  Object metadata = Object::steal(PyDict_New());
  for (const auto& [key, value] : loaded.second) {
    PyDict_SetItemString(metadata.get(), key.c_str(), metadata_object(value).get());
  }
  return PyTuple_Pack(2, arrays.get(), metadata.get());
}

PyObject* save_quantised(Arguments& a) {
  std::unordered_map<std::string, array> arrays = arrays_of(a, 1);
  std::unordered_map<std::string, GGUFMetaData> metadata;
  if (!PyDict_Check(a.object(2))) a.refuse(2, "a dict");
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(a.object(2), &position, &key, &value)) {
    GGUFMetaData data;
    if (is_array(value)) {
      data = value_of(value);
    } else if (PyUnicode_Check(value)) {
      data = text_of(value);
    } else if (PyList_Check(value)) {
      std::vector<std::string> texts;
      for (Py_ssize_t i = 0; i < PyList_Size(value); ++i) {
        texts.push_back(text_of(PyList_GetItem(value, i)));
      }
      data = std::move(texts);
    } else {
      a.refuse(2, "a dict of arrays, str and lists of str");
    }
    metadata.emplace(text_of(key), std::move(data));
  }
  std::string name = a.text(0);
  {
    WithoutGil released;
    save_gguf(name, std::move(arrays), std::move(metadata));
  }
  return give_none();
}

constexpr const char* replaced_file_name = "holdfast.ReplacedFile";

// For what Python writes itself: the descriptor to write to, and what puts the file in its place.
PyObject* replace_file(Arguments& a) {
  auto made = std::make_unique<base::ReplacedFile>(a.text(1), a.text(0));
  const int descriptor = made->descriptor();
  PyObject* capsule = PyCapsule_New(made.get(), replaced_file_name, [](PyObject* self) {
    delete static_cast<base::ReplacedFile*>(PyCapsule_GetPointer(self, replaced_file_name));
  });
  if (!capsule) throw PythonError();
  made.release();
  Object owner = Object::steal(capsule), number = Object::steal(PyLong_FromLong(descriptor));
  return PyTuple_Pack(2, number.get(), owner.get());
}

PyObject* commit_file(Arguments& a) {
  void* file = PyCapsule_GetPointer(a.object(0), replaced_file_name);
  if (!file) throw PythonError();
  static_cast<base::ReplacedFile*>(file)->commit();
  return give_none();
}

constexpr Row rows[] = {
    {"_load_npy", "(source, stream)", "For the package itself.", "",
     [](Arguments& a) {
       return give(load_from(
           a, [](const std::string& name, StreamOrDevice s) { return load(name, s); },
           [](auto reader, StreamOrDevice s) { return load(reader, s); }));
     }},
    {"_load_npz", "(source, stream)", "For the package itself.", "",
     [](Arguments& a) {
       return dictionary_of(
                  load_from(
                      a,
                      [](const std::string& name, StreamOrDevice s) { return load_npz(name, s); },
                      [](auto reader, StreamOrDevice s) { return load_npz(reader, s); }))
           .release();
     }},
    {"_load_safetensors", "(source, stream)", "For the package itself.", "", load_tensors},
    {"_load_gguf", "(source, stream)", "For the package itself.", "", load_quantised},
    {"_save_npy", "(file, arr)", "For the package itself; None: returns the bytes.", "",
     save_array},
    {"_save_safetensors", "(file, arrays, metadata)",
     "For the package itself; None: returns the bytes.", "", save_tensors},
    {"_replace_file", "(file, op)", "For the package itself.", "", replace_file},
    {"_commit_file", "(replaced)", "For the package itself.", "", commit_file},
    {"_save_gguf", "(file, arrays, metadata)", "For the package itself.", "", save_quantised},
};

}  // namespace

void add_files(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
