#include "workspace.hpp"

#include <algorithm>

namespace micronet {

int64_t tokens_at_once(const Model& model) {
  const Config& c = model.config;
  const int64_t widest = std::max({c.width, c.ffn_width, c.heads * (2 * c.key_width + c.value_width)});
  return std::clamp<int64_t>((int64_t{1} << 20) / widest, 1, 64);
}

Workspace::Workspace(const Model& model, int64_t tokens_) : tokens(tokens_) {
  const Config& c = model.config;
  embedded.resize(1, *std::max_element(c.embedding_widths.begin(), c.embedding_widths.end()));
  for (States* states : {&x, &norm, &outer, &hidden}) states->resize(tokens, c.width);
  qkv.resize(tokens, c.heads * (2 * c.key_width + c.value_width));
  mixed.resize(tokens, c.heads * c.value_width);
  inner.resize(tokens, c.ffn_width);
  if (model.exact) queries_ = Buffer<double>(c.heads * c.key_width);
}

void Workspace::prepare(const Model& model, int64_t n) {
  if (n <= prepared) return;
  const Config& c = model.config;
  const int64_t room = padded(std::min(c.context, std::max<int64_t>(2 * n, 64)));
  if (model.exact) exact_scores.at_least(c.heads * (room + kLanes));
  scores.at_least(std::max(room, padded(c.value_width)) + kLanes);
  probabilities.at_least(room + 2 * kLanes);
  integers.at_least(padded(c.key_width + 1) + room + 2 * kLanes);
  prepared = room;
}

const double* Workspace::wide_queries(int64_t token) {
  const float* queries = qkv.row(token);
  for (int64_t i = 0; i < queries_.size(); ++i) queries_[i] = queries[i];
  return queries_.data();
}

}  // namespace micronet
