/** A sentence with code between backticks. */
export function Coded({ text }: { text: string }) {
  const parts = text.split("`");
  // One that stands alone is no pair.
  if (parts.length % 2 === 0) return text;
  return parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
