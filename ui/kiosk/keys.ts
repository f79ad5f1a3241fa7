// What a field holds after a key of the on-screen keypad: at the cursor, over what is selected, as a real key would.

export function afterKey(input: HTMLInputElement, key: string): string {
  const { value } = input;
  const start = input.selectionStart ?? value.length;
  const end = input.selectionEnd ?? value.length;
  if (key !== "backspace") return value.slice(0, start) + key + value.slice(end);
  return value.slice(0, start === end ? Math.max(0, start - 1) : start) + value.slice(end);
}
