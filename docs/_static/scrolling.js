// What scrolls sideways must be in the order of the Tab key: the arrow keys move only what has the focus.
addEventListener("DOMContentLoaded", () => {
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", 0);
      else target.removeAttribute("tabindex");
    }
  });
  for (const each of document.querySelectorAll("article pre, article .table-wrapper")) watch.observe(each);
});
