// A JSON reader that reads from left to right and builds no tree, so that hostile text cannot exhaust memory.
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
  bool open(char bracket);   // whether it is not empty
  bool next(char bracket);   // whether another element follows
  std::string key();         // a string and the colon after it
  std::string string();
  int64_t integer();         // from 0 to 2^53
  bool boolean();            // true or false
  bool null();               // reads a null if there is one; returns whether there was
  bool is_object();          // whether an object comes next; reads nothing
  void skip();               // reads any value, nested at most 64 deep
  void end();                // checks that only white space follows

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
