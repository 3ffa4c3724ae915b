// Transforms of functions from lists of arrays to lists of arrays. The package makes grad, vmap,
// compile and the others of them, which take trees (holdfast/core/_transforms.py).
#include <holdfast/transforms.h>

#include <holdfast/compile_impl.h>
#include <holdfast/transforms_impl.h>

#include "arguments.h"
#include "array_type.h"
#include "ops.h"
#include "trees.h"

namespace holdfast::python {

namespace {

using Arrays = std::vector<array>;
using Function = std::function<Arrays(const Arrays&)>;

Arrays arrays_from(PyObject* result) {
  return arrays_of(result, [](PyObject* element) {
    raise(PyExc_ValueError,
          "a function that is transformed must return arrays, got " + type_name(element));
  });
}

Object list_of(const Arrays& arrays) { return Object::steal(give_list(arrays)); }

Object list_of(const std::vector<int>& numbers) {
  Object list = Object::steal(PyList_New(0));
  for (int number : numbers) {
    PyList_Append(list.get(), Object::steal(PyLong_FromLong(number)).get());
  }
  return list;
}

template <typename... Lists>
Object call(PyObject* callable, const Lists&... lists) {
  Object arguments = Object::steal(PyTuple_Pack(sizeof...(lists), list_of(lists).get()...));
  return Object::steal(PyObject_Call(callable, arguments.get(), nullptr));
}

// Transforms trace on the calling thread, which holds the GIL.
Function function_of(PyObject* callable) {
  return [callable = shared(callable)](const Arrays& inputs) {
    return arrays_from(call(callable.get(), inputs).get());
  };
}

PyObject* pair_of_lists(const std::pair<Arrays, Arrays>& lists) {
  return PyTuple_Pack(2, list_of(lists.first).get(), list_of(lists.second).get());
}

PyObject* make_custom(Arguments& a) {
  using Vjp = std::function<Arrays(const Arrays&, const Arrays&, const Arrays&)>;
  using Jvp = std::function<Arrays(const Arrays&, const Arrays&, const std::vector<int>&)>;
  using Vmap =
      std::function<std::pair<Arrays, std::vector<int>>(const Arrays&, const std::vector<int>&)>;
  std::optional<Vjp> vjp;
  std::optional<Jvp> jvp;
  std::optional<Vmap> vmap;
  if (!a.is_none(1)) {
    vjp = [rule = shared(a.object(1))](const Arrays& primals, const Arrays& cotangents,
                                       const Arrays& outputs) {
      return arrays_from(call(rule.get(), primals, cotangents, outputs).get());
    };
  }
  if (!a.is_none(2)) {
    jvp = [rule = shared(a.object(2))](const Arrays& primals, const Arrays& tangents,
                                       const std::vector<int>& places) {
      return arrays_from(call(rule.get(), primals, tangents, places).get());
    };
  }
  if (!a.is_none(3)) {
    vmap = [rule = shared(a.object(3))](const Arrays& inputs, const std::vector<int>& axes) {
      Object result = call(rule.get(), inputs, axes);
      Object places = Object::steal(PySequence_GetItem(result.get(), 1));
      std::pair<Arrays, std::vector<int>> outputs;
      outputs.first = arrays_from(Object::steal(PySequence_GetItem(result.get(), 0)).get());
      for (Py_ssize_t i = 0; i < PySequence_Size(places.get()); ++i) {
        outputs.second.push_back(to_int(Object::steal(PySequence_GetItem(places.get(), i)).get()));
      }
      return outputs;
    };
  }
  return give_list(custom_function(function_of(a.object(0)), vjp, jvp, vmap)(a.arrays(4)));
}

// Calls a compiled function. What the traced call returned beside arrays comes back with them.
PyObject* call_compiled(Arguments& a) {
  detail::ArrayFnWithExtra fun = [callable = shared(a.object(0))](const Arrays& inputs) {
    Object result = call(callable.get(), inputs);
    Object arrays = Object::steal(PySequence_GetItem(result.get(), 0));
    Object extra = Object::steal(PySequence_GetItem(result.get(), 1));
    std::shared_ptr<void> held(extra.release(),
                               [](void* object) { drop_later(static_cast<PyObject*>(object)); });
    return detail::ArraysAndExtra(arrays_from(arrays.get()), std::move(held));
  };
  std::vector<uint64_t> constants;
  Object numbers = as_sequence(a.object(3));
  for (Py_ssize_t i = 0; i < PySequence_Size(numbers.get()); ++i) {
    Object number = Object::steal(PySequence_GetItem(numbers.get(), i));
    constants.push_back(PyLong_AsUnsignedLongLongMask(number.get()));
  }
  detail::ArrayFnWithExtra compiled =
      detail::compile(std::move(fun), a.size(1), a.truth(2), std::move(constants));
  auto [arrays, extra] = compiled(a.arrays(4));
  return PyTuple_Pack(2, list_of(arrays).get(), static_cast<PyObject*>(extra.get()));
}

template <void (*function)(Arrays)>
PyObject* evaluate(Arguments& a) {
  Arrays arrays;
  for (PyObject* tree : a.rest()) collect_arrays(tree, arrays);
  {
    WithoutGil released;
    function(std::move(arrays));
  }
  return give_none();
}

Nodes nodes_of(Arguments& a, int place) { return a.truth(place) ? Nodes::plain : Nodes::all; }

constexpr Row rows[] = {
    {"eval", "(*args)", "Computes arrays, or trees of arrays, and waits for them.",
     "mx.eval(mx.ones(2) + 1, {\"a\": [mx.zeros(2)]})", evaluate<&eval>},
    {"async_eval", "(*args)", "Starts to compute arrays, or trees of arrays.",
     "mx.async_eval(mx.ones(2) + 1)", evaluate<&async_eval>},
    {"_vjp", "(fun, primals, cotangents)", "For the package itself.", "",
     [](Arguments& a) {
       return pair_of_lists(vjp(function_of(a.object(0)), a.arrays(1), a.arrays(2)));
     }},
    {"_jvp", "(fun, primals, tangents)", "For the package itself.", "",
     [](Arguments& a) {
       return pair_of_lists(jvp(function_of(a.object(0)), a.arrays(1), a.arrays(2)));
     }},
    {"_value_and_grad", "(fun, arguments, argnums)", "For the package itself.", "",
     [](Arguments& a) {
       return pair_of_lists(value_and_grad(function_of(a.object(0)), a.integers(2))(a.arrays(1)));
     }},
    {"_vmap_trace", "(fun, inputs, axes)", "For the package itself.", "",
     [](Arguments& a) {
       return pair_of_lists(
           detail::vmap_trace(function_of(a.object(0)), a.arrays(1), a.integers(2)));
     }},
    {"_vmap_replace", "(inputs, traced_inputs, traced_outputs, axes, out_axes)",
     "For the package itself.", "",
     [](Arguments& a) {
       return give_list(detail::vmap_replace(a.arrays(0), a.arrays(1), a.arrays(2), a.integers(3),
                                             a.integers(4)));
     }},
    {"_custom_function", "(fun, vjp, jvp, vmap, inputs)", "For the package itself.", "",
     make_custom},
    {"_checkpoint", "(fun, inputs)", "For the package itself.", "",
     [](Arguments& a) { return give_list(checkpoint(function_of(a.object(0)))(a.arrays(1))); }},
    {"_call_compiled", "(fun, fun_id, shapeless, constants, inputs)", "For the package itself.", "",
     call_compiled},
    {"_forget_compiled", "(fun_id)", "For the package itself.", "",
     [](Arguments& a) {
       detail::compile_erase(a.size(0));
       return give_none();
     }},
    {"_set_random_state_type", "(type)", "For the package itself.", "",
     [](Arguments& a) {
       set_random_state_type(a.object(0));
       return give_none();
     }},
    {"_set_remake", "(function)", "For the package itself.", "",
     [](Arguments& a) {
       set_remake(a.object(0));
       return give_none();
     }},
    {"_is_namespace", "(tree)", "For the package itself.", "",
     [](Arguments& a) { return PyBool_FromLong(is_namespace_node(a.object(0))); }},
    {"_tree_give_back", "(mine, used, structure, arrays, plain=False)", "For the package itself.",
     "",
     [](Arguments& a) {
       give_back(a.object(0), a.object(1), a.object(2), a.arrays(3), nodes_of(a, 4));
       return give_none();
     }},
    {"_tree_flatten", "(tree, plain=False)",
     "For the package itself: arrays, and the tree without them.", "",
     [](Arguments& a) {
       Arrays arrays;
       Object structure = take_arrays(a.object(0), arrays, nodes_of(a, 1));
       return PyTuple_Pack(2, list_of(arrays).get(), structure.get());
     }},
    {"_tree_unflatten", "(structure, arrays, plain=False)", "For the package itself.", "",
     [](Arguments& a) {
       size_t next = 0;
       return put_arrays(a.object(0), a.arrays(1), next, nodes_of(a, 2)).release();
     }},
    {"_tree_arrays", "(tree)", "For the package itself.", "",
     [](Arguments& a) {
       Arrays arrays;
       collect_arrays(a.object(0), arrays);
       return give_list(std::move(arrays));
     }},
    {"_tree_replace", "(tree, arrays)", "For the package itself.", "",
     [](Arguments& a) {
       size_t next = 0;
       replace_arrays(a.object(0), a.arrays(1), next);
       return give_none();
     }},
};

}  // namespace

void add_transforms(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
