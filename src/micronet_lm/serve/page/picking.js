// A suggestion that was picked becomes text; the page of `micronet page` has this module, too.

const CLOSING = /^[.,;:!?)\]}%”»›…]/;
const OPENED = /[\s([{“‘«‹¿¡]$/;

/** Return a text with a picked word at its end: in the place of `replaces`, or after it with a space where one belongs. */
export function picked(text, word, replaces) {
  if (replaces && text.endsWith(replaces)) return text.slice(0, text.length - replaces.length) + word;
  if (CLOSING.test(word)) return text.replace(/ +$/, "") + word;
  return text && !OPENED.test(text) ? `${text} ${word}` : text + word;
}
