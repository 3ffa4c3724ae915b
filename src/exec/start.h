// The composition root, as this layer calls it: declared here, defined in src/start, where all
// layers can be seen. These are the only functions of the library that are defined to the right of
// their declaration.
#pragma once

namespace holdfast::exec {
class Runtime;
}

namespace holdfast::start {

// Once, before the first buffer: starts the layers that must see every buffer, as the environment
// says. Throws std::invalid_argument that names the variable; the next use tries again.
void before_first_buffer();
// Once, when the runtime can be used and before it has a queue: gives the devices what encodes ops
// and compiles kernels for them, and starts what the environment asks for.
void runtime(exec::Runtime& runtime);

}  // namespace holdfast::start
