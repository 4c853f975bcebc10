// A file mapped read-only. Touching a page beyond a file that shrank is a bus error, so sizes are checked when it is
// opened.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace base {

class MappedFile {
 public:
  // Throws base::Exception: kNotFound if the file cannot be opened (with the system's reason), kBadFile if it is no
  // regular file.
  static std::shared_ptr<const MappedFile> Open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Tells the kernel that these bytes are not needed any more (after packing). Thread-safe.
  void Drop(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size) : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  size_t size_;
};

}  // namespace base
