// Images of kernels as bytes, and that builds with and without a compiler run kernels from them.
#include "devices/kernel_images.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include <holdfast/holdfast.h>

#include "base/environment.h"
#include "devices/cpu/cpu_target.h"
#include "devices/image_writer.h"
#include "exec/kernel_library.h"
#include "kernels/metal/entries.h"

using namespace holdfast;
using exec::KernelImages;

namespace {

std::string two_images(const std::string& source) {
  exec::ImageWriter writer;
  writer.add("one", "f", "bytes of f");
  writer.add("one", "g", std::string(100000, 'g'));
  writer.add("two", "f", "other bytes");
  return writer.take(source);
}

}  // namespace

TEST_CASE("images are found by target and entry") {
  const std::string bytes = two_images("source");
  CHECK(bytes.size() < 1000);
  KernelImages images(bytes, "source");
  CHECK(images.images() == std::vector<std::string>{"one", "two"});
  CHECK(images.find("one", "f") == "bytes of f");
  CHECK(images.find("one", "g") == std::string(100000, 'g'));
  CHECK(images.find("two", "f") == "other bytes");
  CHECK(images.find("two", "g").empty());
  CHECK(images.find("three", "f").empty());
  CHECK(images.entries("one") == std::vector<std::string>{"f", "g"});
  CHECK(images.entries("three").empty());
}

TEST_CASE("images of another source are none") {
  const std::string bytes = two_images("source");
  CHECK(KernelImages(bytes, "another source").images().empty());
  CHECK(KernelImages("", "source").images().empty());
}

TEST_CASE("images that are cut off are none") {
  const std::string bytes = two_images("source");
  for (size_t size = 0; size < bytes.size(); ++size) {
    KernelImages images(std::string_view(bytes).substr(0, size), "source");
    if (!images.images().empty()) FAIL_CHECK("with " << size << " bytes");
  }
}

TEST_CASE("damaged images give no kernel that was not in them") {
  const std::string whole = two_images("source");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x41);
    KernelImages images(bytes, "source");
    for (const std::string& name : images.images()) images.find(name, "f");
  }
}

TEST_CASE("the library's own kernels come from images, without a compiler") {
  size_t files = 0;
  for (const kernels::metal::EmbeddedSource& source : kernels::metal::embedded_sources())
    files += !kernels::metal::images_of(source.name).images().empty();
  if (files == 0) {
    MESSAGE("this build has no images (HOLDFAST_KERNEL_IMAGES)");
    return;
  }
  CHECK_MESSAGE(files == kernels::metal::embedded_sources().size(),
                "some images are older than their kernels: build preset release first");
  exec::KernelLibrary::find_image = kernels::metal::find_image;
  exec::KernelLibrary library({});
  exec::Target& target = exec::cpu_target();
  size_t kernels = 0;
  for (const kernels::metal::EmbeddedSource& source : kernels::metal::embedded_sources()) {
    CAPTURE(source.name);
    const auto names = target.image_names({});
    REQUIRE(names.size() == 1);
    for (const std::string& entry : kernels::metal::images_of(source.name).entries(names[0])) {
      msl::KernelSource kernel;
      kernel.kernel = kernel.entry = entry;
      kernel.text = source.text;
      auto request = make_ref<exec::KernelRequest>(kernel, exec::KernelOptions{}, target);
      Ref<exec::Pipeline> pipeline = library.get(Ref<const exec::KernelRequest>(request));
      CHECK(pipeline->interface().entry == entry);
      ++kernels;
    }
  }
  CHECK(kernels > 30);
  CHECK(library.stats().compiles == 0);
  CHECK(library.stats().disk_hits == kernels);
}
