#include "added_words.hpp"

#include "status.hpp"

namespace micronet {

AddedWords::AddedWords(const Vocabulary& vocabulary)
    : vocabulary_(&vocabulary), first_(vocabulary.size()), unknown_(vocabulary.find("<unk>")) {}

int32_t AddedWords::find(std::string_view word) const {
  const int32_t known = vocabulary_->find(word);
  if (known >= 0) return known;
  const auto found = ids_.find(word);
  return found == ids_.end() ? -1 : found->second;
}

int32_t AddedWords::add(std::string_view word) {
  const int32_t found = find(word);
  if (found >= 0) return found;
  if (word.empty() || word.find('\n') != word.npos)
    fail(MN_ERROR_ARGUMENT, "a word to add must not be empty or contain a line feed");
  if (unknown_ < 0) fail(MN_ERROR_ARGUMENT, "the vocabulary lacks <unk>, as which added words are read");
  if (size() >= kMost) fail(MN_ERROR_ARGUMENT, "a session can add at most %d words", kMost);
  const int32_t id = first_ + size();
  words_.push_back(std::make_shared<const std::string>(word));
  ids_.emplace(*words_.back(), id);
  return id;
}

void AddedWords::drop(int32_t id) {
  if (id < first_) return;
  auto nothing = std::make_shared<const std::string>();
  ids_.erase(*words_[size_t(id - first_)]);
  words_[size_t(id - first_)] = std::move(nothing);
  dropped_ = true;
}

}  // namespace micronet
