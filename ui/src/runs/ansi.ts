const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;

/** A line without the escapes of terminals. */
export const plain = (text: string) => (text.includes("\u001b") ? text.replace(ESCAPES, "") : text);
