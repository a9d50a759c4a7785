// Where the caret of a text area is: a copy of its text in a hidden element of the same shape tells.

const COPIED = [
  "boxSizing", "width", "paddingTop", "paddingRight", "paddingBottom", "paddingLeft",
  "borderTopWidth", "borderRightWidth", "borderBottomWidth", "borderLeftWidth",
  "fontFamily", "fontSize", "fontWeight", "lineHeight", "letterSpacing", "tabSize",
];
let mirror = null;

/** Return the caret's place in pixels, from the text area's upper left corner. */
export function caretPlace(area) {
  if (!mirror) {
    mirror = document.createElement("div");
    mirror.className = "mirror";
    mirror.setAttribute("aria-hidden", "true");
    document.body.append(mirror);
  }
  const style = getComputedStyle(area);
  for (const name of COPIED) mirror.style[name] = style[name];
  mirror.textContent = area.value.slice(0, area.selectionStart);
  const mark = document.createElement("span");
  mark.textContent = "\u200b";
  mirror.append(mark);
  const place = { left: mark.offsetLeft, top: mark.offsetTop - area.scrollTop };
  mirror.textContent = "";
  return place;
}
