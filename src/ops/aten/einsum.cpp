// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <sstream>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Two operands at a time: letters of both and the result are batch, letters of both alone are summed by a matrix
// product, the others belong to one side. A letter of one operand alone that the result lacks is summed first.
struct Term {
  Val x;
  std::string letters;
};

// A letter that stands twice in an operand names its diagonal, whose dim stands last.
Term on_diagonals(Builder& b, Term t) {
  for (std::size_t i = 0; i < t.letters.size();) {
    const char c = t.letters[i];
    const std::size_t k = t.letters.find(c, i + 1);
    if (k == std::string::npos) {
      ++i;
      continue;
    }
    const auto first = static_cast<int>(i), second = static_cast<int>(k);
    if (t.x.dim(first) != t.x.dim(second))
      b.refuse("aten.einsum.size", "letter '" + std::string(1, c) + "' stands for " + std::to_string(t.x.dim(first)) +
                                       " and " + std::to_string(t.x.dim(second)));
    t.x = b.aten(aten::op::diagonal, {t.x}, {{"dim1", std::int64_t{first}}, {"dim2", std::int64_t{second}}});
    t.letters.erase(k, 1).erase(i, 1);
    t.letters += c;
  }
  return t;
}
Term without(Term t, const std::string& keep) {
  std::vector<int> axes;
  std::string left;
  for (std::size_t i = 0; i < t.letters.size(); ++i) {
    if (keep.find(t.letters[i]) == std::string::npos)
      axes.push_back(static_cast<int>(i));
    else
      left += t.letters[i];
  }
  return axes.empty() ? t : Term{calls::sum(t.x, axes, false), left};
}
Val arranged(const Term& t, const std::string& order) {
  std::vector<int> dims;
  bool same = true;
  for (char c : order) {
    dims.push_back(static_cast<int>(t.letters.find(c)));
    same &= dims.back() == static_cast<int>(dims.size()) - 1;
  }
  return same ? t.x : calls::permute(t.x, dims);
}
Term product(Term p, Term q, const std::string& later) {
  auto has = [](const std::string& s, char c) { return s.find(c) != std::string::npos; };
  std::string batch, summed, left, right;
  std::map<char, std::int64_t> size;
  for (std::size_t i = 0; i < p.letters.size(); ++i) size[p.letters[i]] = p.x.dim(static_cast<int>(i));
  for (std::size_t i = 0; i < q.letters.size(); ++i) {
    auto& s = size[q.letters[i]];
    const std::int64_t d = q.x.dim(static_cast<int>(i));
    if (s != 0 && s != d)
      p.x.builder().refuse("aten.einsum.size", "letter '" + std::string(1, q.letters[i]) + "' stands for " +
                                                   std::to_string(s) + " and " + std::to_string(d));
    s = d;
  }
  for (char c : p.letters) (has(q.letters, c) ? (has(later, c) ? batch : summed) : left) += c;
  for (char c : q.letters)
    if (!has(p.letters, c)) right += c;
  auto extent = [&](const std::string& letters) {
    std::int64_t n = 1;
    for (char c : letters) n *= size[c];
    return n;
  };
  Val a = calls::view(arranged(p, batch + left + summed), {extent(batch), extent(left), extent(summed)});
  Val d = calls::view(arranged(q, batch + summed + right), {extent(batch), extent(summed), extent(right)});
  std::vector<std::int64_t> dims;
  for (char c : batch + left + right) dims.push_back(size[c]);
  return {calls::view(a.builder().aten(aten::op::bmm, {a, d}), Shape(dims)), batch + left + right};
}

// "..." stands for the dims that have no letter of their own: gives them letters.
std::string spelled(Builder& b, std::string term, int rank) {
  const auto dots = term.find("...");
  if (dots == std::string::npos) return term;
  const int hidden = rank - static_cast<int>(term.size() - 3);
  if (hidden < 0 || hidden > 10)
    b.refuse("aten.einsum.rank", "the operand '" + term + "' has rank " + std::to_string(rank));
  std::string names;
  for (int i = hidden; i > 0; --i) names += static_cast<char>('0' + i - 1);  // counted from the last dim
  return term.replace(dots, 3, names);
}

Vals lower(Builder& b, const Call& call) {
  std::string equation = call.text("equation");
  std::erase(equation, ' ');
  const auto tensors = call.tensors("tensors");
  const auto arrow = equation.find("->");
  std::istringstream inputs(equation.substr(0, arrow));
  std::vector<Term> terms;
  std::string all;
  for (std::string letters; std::getline(inputs, letters, ',');) {
    if (terms.size() >= tensors.size()) break;
    Val x = *tensors[terms.size()];
    letters = spelled(b, letters, x.rank());
    if (static_cast<int>(letters.size()) != x.rank())
      b.refuse("aten.einsum.rank", "the operand '" + letters + "' has rank " + std::to_string(x.rank()));
    terms.push_back(on_diagonals(b, {x, letters}));
    all += letters;
  }
  if (terms.empty() || terms.size() != tensors.size())
    b.refuse("aten.einsum.operands",
             "'" + equation + "' does not name " + std::to_string(tensors.size()) + " operands");
  std::string result;
  if (arrow != std::string::npos) {
    std::size_t most = 0;  // an ellipsis of the result is the longest of the operands'
    for (const Term& t : terms)
      most = std::max(most, static_cast<std::size_t>(std::count_if(t.letters.begin(), t.letters.end(),
                                                                   [](char c) { return c >= '0' && c <= '9'; })));
    std::string text = equation.substr(arrow + 2);
    const auto dots = text.find("...");
    result = dots == std::string::npos ? text : spelled(b, text, static_cast<int>(text.size() - 3 + most));
  } else {  // implicit: what stands once, in alphabetical order
    std::string sorted = all;
    std::sort(sorted.begin(), sorted.end());
    for (char c : sorted)
      if (std::count(sorted.begin(), sorted.end(), c) == 1 || (c <= '9' && result.find(c) == std::string::npos))
        result += c;
  }
  for (char c : result)
    if (all.find(c) == std::string::npos)
      b.refuse("aten.einsum.result", "letter '" + std::string(1, c) + "' of the result is in no operand");
  Term done = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::string later = result;
    for (std::size_t k = i + 1; k < terms.size(); ++k) later += terms[k].letters;
    done = without(done, later + terms[i].letters);
    done = product(done, without(terms[i], later + done.letters), later);
  }
  return arranged(without(done, result), result);
}
}  // namespace

AtenOp aten_einsum() {
  return {.schemas = {"einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor"},
          .summary = "sums of products over named dims",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"'ij,jk->ik', [x(3,4), x(4,5)]", "'bhid,bhjd->bhij', [x(2,2,3,4), x(2,2,5,4)]",
                     "'bij,bjk,kl->bil', [x(2,3,4), x(2,4,5), x(5,2)]", "'ij->ji', [x(3,4)]", "'ij->i', [x(3,4)]",
                     "'i,j', [x(3), x(4)]", "'...ij,jk->...ik', [x(2,2,3,4), x(4,5)]", "'bi,bi->b', [x(3,4), x(3,4)]",
                     "'ii->i', [x(4,4)]", "'ii', [x(4,4)]", "'bii,ij->bj', [x(2,3,3), x(3,4)]", "'iji->j', [x(3,2,3)]",
                     "'iii->i', [x(3,3,3)]"}};
}
}  // namespace tosaic
