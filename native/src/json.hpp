// Reads JSON from left to right, without building a tree: hostile text cannot use up memory.
#pragma once

#include <cstdint>
#include <string>

#include "bytes.hpp"

namespace micronet {

class Json {
 public:
  // `what` names the text in errors.
  Json(Bytes text, const char* what) : text_(text), what_(what) {}

  // for (bool more = json.open('{'); more; more = json.next('}')) { key = json.key(); … }
  bool open(char bracket);   // whether something stands inside
  bool next(char bracket);   // whether another element follows
  std::string key();         // a string and the colon behind it
  std::string string();
  int64_t integer();         // from 0 to 2^53
  bool null();               // whether null stood here; nothing is read if not
  bool is_object();          // whether an object stands here; nothing is read
  void skip();               // any value; at most 64 deep
  void end();                // nothing but white space may follow

  [[noreturn]] void damaged(const char* why) const;

 private:
  char peek();
  void expect(char c);
  void skip_value(int depth);
  void skip_number();
  uint32_t hexadecimal();

  Bytes text_;
  const char* what_;
  size_t at_ = 0;
};

}  // namespace micronet
