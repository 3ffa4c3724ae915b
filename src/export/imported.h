// A function from a file, ready to be called.
#pragma once

#include <memory>

#include <holdfast/export.h>
#include <holdfast/io.h>

namespace holdfast {

// As import_function, from any reader.
ImportedFunction import_function(std::shared_ptr<io::Reader> reader);

}  // namespace holdfast
