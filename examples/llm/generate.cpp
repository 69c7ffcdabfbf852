// SPDX-License-Identifier: Apache-2.0
// generate MODEL.pte COUNT ID...: the COUNT tokens that a language model finds most likely behind the tokens ID..., one
// after the other. MODEL.pte has the methods `prefill`, perhaps others whose names begin so, and `decode`, as llm.py
// makes them: each takes token ids [1, T] and their positions [T], int64 or int32, and gives logits [1, T, vocabulary]
// or those of the last token, f32; T is 1 in `decode`. All write one cache. Prints the ids, and tokens per second to
// stderr.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <tosaic/tosaic.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<std::int64_t>;

int refuse(const tosaic::Diagnostic& why) {
  std::fputs(tosaic::render(why, false).c_str(), stderr);
  return 1;
}

int refuse(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  return 1;
}

bool number(const char* text, std::int64_t& value) {
  const char* end = text + std::strlen(text);
  const auto [stop, problem] = std::from_chars(text, end, value);
  return problem == std::errc() && stop == end && value >= 0;
}

// `numbers` in the type that the program takes.
tosaic::OwnedTensor tensor_of(const Tokens& numbers, const tosaic::TensorInfo& input, std::vector<std::int64_t> sizes) {
  if (input.dtype == tosaic::DType::i64) return {input.dtype, std::move(sizes), tosaic::Bytes::of(numbers)};
  const std::vector<std::int32_t> narrow(numbers.begin(), numbers.end());
  return {input.dtype, std::move(sizes), tosaic::Bytes::of(narrow)};
}

// Nothing that a program says of itself is believed before it is looked at. Empty: it is one.
std::string no_method(const tosaic::Session& method, const std::string& name) {
  const auto integer = [](const tosaic::TensorInfo& t) {
    return t.dtype == tosaic::DType::i64 || t.dtype == tosaic::DType::i32;
  };
  const auto& in = method.inputs();
  const auto& out = method.outputs();
  if (in.size() != 2 || !integer(in[0]) || !integer(in[1]) || in[0].dims.size() != 2 || in[1].dims.size() != 1 ||
      in[0].dims[1].size != in[1].dims[0].size || in[0].dims[1].size < 1)
    return "method '" + name + "' does not take token ids [1, T] and positions [T]";
  if (out.size() != 1 || !out[0].tensor || out[0].tensor->dtype != tosaic::DType::f32 ||
      out[0].tensor->dims.size() != 3 ||
      (out[0].tensor->dims[1].size != 1 && out[0].tensor->dims[1].size != in[0].dims[1].size))
    return "method '" + name + "' does not give logits [1, T, vocabulary] in f32";
  return {};
}

// Tokens that the cache holds: its rows are the last dimension but one.
std::int64_t context_of(const tosaic::Session& method) {
  std::int64_t rows = 0;
  for (const tosaic::TensorInfo& state : method.states()) {
    if (state.dims.size() < 3) continue;
    const std::int64_t here = state.dims[state.dims.size() - 2].size;
    rows = rows == 0 ? here : std::min(rows, here);
  }
  return rows;
}

using Methods = std::map<std::int64_t, tosaic::Session>;  // by how many tokens they take

bool gives_all(const tosaic::Session& method) {
  return method.outputs()[0].tensor->dims[1].size == method.inputs()[0].dims[1].size;
}

// The most likely token behind `tokens`, the first of which stands at `position`. Where the method takes more than
// these, what it gets behind them is written behind them in the cache, and overwritten in time.
tosaic::Result<std::int64_t> next_token(tosaic::Session& method, Tokens tokens, std::int64_t position) {
  const std::size_t wanted = tokens.size();
  const std::int64_t count = method.inputs()[0].dims[1].size;
  tokens.resize(static_cast<std::size_t>(count));
  Tokens positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(position + i);
  const tosaic::OwnedTensor ids = tensor_of(tokens, method.inputs()[0], {1, count});
  const tosaic::OwnedTensor places = tensor_of(positions, method.inputs()[1], {count});
  auto outputs = method.run({ids.view(), places.view()});
  if (!outputs.ok()) return outputs.error();
  const tosaic::OwnedTensor& logits = *(*outputs)[0].tensor;
  const auto vocabulary = static_cast<std::size_t>(logits.sizes.back());
  const std::size_t row = gives_all(method) ? wanted - 1 : 0;
  const auto scores = logits.data.as<float>().subspan(row * vocabulary, vocabulary);
  return std::int64_t{std::ranges::max_element(scores) - scores.begin()};
}

// The most likely token behind a prompt, in few runs: each takes as many as fit. The last one of several tokens begins
// earlier if fewer are left, with tokens that the cache holds already and gets once more.
tosaic::Result<std::int64_t> read_prompt(Methods& methods, const Tokens& prompt) {
  const auto length = static_cast<std::int64_t>(prompt.size());
  std::int64_t token = 0;
  for (std::int64_t done = 0; done < length;) {
    auto chosen = std::prev(methods.upper_bound(length - done));
    if (chosen->first == 1 && length - done > 1) {
      const auto longer = std::next(chosen);
      if (longer != methods.end() && (longer->first <= length || gives_all(longer->second))) chosen = longer;
    }
    const std::int64_t begin = std::max<std::int64_t>(0, std::min(done, length - chosen->first));
    const std::int64_t end = std::min(begin + chosen->first, length);
    const auto next = next_token(chosen->second, Tokens(prompt.begin() + begin, prompt.begin() + end), begin);
    if (!next.ok()) return next.error();
    token = *next;
    done = end;
  }
  return token;
}

double per_second(std::size_t tokens, Clock::time_point begin) {
  return static_cast<double>(tokens) / std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t wanted = 0;
  Tokens prompt;
  bool usable = argc >= 4 && number(argv[2], wanted) && wanted > 0;
  for (int i = 3; usable && i < argc; ++i) usable = number(argv[i], prompt.emplace_back());
  if (!usable) {
    std::fputs("usage: generate MODEL.pte COUNT ID...\n", stderr);
    return 2;
  }
  tosaic::SessionOptions options;
  options.method = "decode";
  auto opened = tosaic::Session::open(argv[1], options);
  if (!opened.ok()) return refuse(opened.error());
  if (const std::string why = no_method(*opened, "decode"); !why.empty()) return refuse(why);
  if (opened->inputs()[0].dims[1].size != 1) return refuse("method 'decode' takes more than one token");
  Methods methods;
  for (const std::string& name : opened->methods()) {
    if (!name.starts_with("prefill")) continue;
    auto method = opened->method(name);  // the same weights, the same cache
    if (!method.ok()) return refuse(method.error());
    if (const std::string why = no_method(*method, name); !why.empty()) return refuse(why);
    methods.emplace(method->inputs()[0].dims[1].size, std::move(*method));
  }
  if (methods.empty()) return refuse("the program has no method 'prefill'");
  tosaic::Session& decode = methods.insert_or_assign(1, std::move(*opened)).first->second;
  const std::int64_t vocabulary = decode.outputs()[0].tensor->dims[2].size, context = context_of(decode);
  if (std::ranges::max(prompt) >= vocabulary)
    return refuse("token " + std::to_string(std::ranges::max(prompt)) + " is none of the " +
                  std::to_string(vocabulary));
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (context > 0 && wanted - 1 > context - length)  // the last token is not fed
    return refuse(std::to_string(length) + " tokens and " + std::to_string(wanted) + " more do not fit the cache of " +
                  std::to_string(context) + ": ask for fewer, or export the model with a longer cache");

  auto begin = Clock::now();
  const auto first = read_prompt(methods, prompt);
  if (!first.ok()) return refuse(first.error());
  std::int64_t token = *first;
  const double read = per_second(prompt.size(), begin);
  begin = Clock::now();
  for (std::int64_t i = 0;; ++i) {
    std::printf("%s%lld", i == 0 ? "" : " ", static_cast<long long>(token));
    std::fflush(stdout);
    if (i + 1 == wanted) break;
    const auto next = next_token(decode, {token}, length + i);
    if (!next.ok()) return refuse(next.error());
    token = *next;
  }
  std::puts("");
  std::fprintf(stderr, "prompt: %zu tokens, %.1f a second", prompt.size(), read);
  if (wanted > 1)
    std::fprintf(stderr, "; generated: %.1f a second", per_second(static_cast<std::size_t>(wanted) - 1, begin));
  std::fputs("\n", stderr);
  return 0;
}
