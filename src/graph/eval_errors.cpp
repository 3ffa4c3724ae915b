#include "graph/eval_errors.h"

#include <holdfast/errors.h>
#include <holdfast/validation.h>

#include <cstring>
#include <new>
#include <set>
#include <string>

#include "base/sync.h"

namespace holdfast {

void rethrow_with_op(const char* op) {
  auto named = [&](const std::exception& error) {
    std::string text = error.what();
    return text.starts_with('[') ? text : std::string("[") + op + "] " + text;
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(std::string("[") + op + "] the host has no memory left to encode the op");
  } catch (const OutOfMemory&) {
    throw;
  } catch (const validation::ValidationError&) {
    throw;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(named(error));
  } catch (const std::out_of_range& error) {
    throw std::out_of_range(named(error));
  } catch (const std::overflow_error& error) {
    throw std::overflow_error(named(error));
  } catch (const std::logic_error& error) {
    throw std::logic_error(named(error));
  } catch (const std::exception& error) {
    throw std::runtime_error(named(error));
  } catch (...) {
    throw std::runtime_error(std::string("[") + op +
                             "] threw something that is not a std::exception");
  }
}

const char* literal_name(const Primitive& primitive) {
  const char* name = primitive.name();
  if (primitive.traits().name_is_literal) return name;
  // Often the same as for the op before.
  thread_local const char* last = "";
  if (std::strcmp(last, name) == 0) return last;
  static sync::Mutex mutex;
  static auto* names = new std::set<std::string, std::less<>>;
  std::lock_guard guard(mutex);
  auto found = names->find(std::string_view(name));
  if (found == names->end()) found = names->insert(name).first;
  return last = found->c_str();
}

}  // namespace holdfast
