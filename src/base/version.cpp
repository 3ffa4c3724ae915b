#include <holdfast/version.h>

#define HOLDFAST_TEXT_OF(x) #x
#define HOLDFAST_TEXT(x) HOLDFAST_TEXT_OF(x)

namespace holdfast {

const char* version() {
  return HOLDFAST_TEXT(HOLDFAST_VERSION_MAJOR) "." HOLDFAST_TEXT(
      HOLDFAST_VERSION_MINOR) "." HOLDFAST_TEXT(HOLDFAST_VERSION_PATCH);
}

}  // namespace holdfast
