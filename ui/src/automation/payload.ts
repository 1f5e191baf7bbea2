// Messages that people write to try a sensor.

export const SAMPLES: Record<string, string> = {
  push: '{\n  "file": "orders-2026-01-15.csv"\n}',
  asset: '{\n  "asset": "raw.orders",\n  "partition": "2026-01-15"\n}',
  run: '{\n  "state": "FAILED"\n}',
};

/** The JSON that a text is, or why it is none. */
export function parsed(text: string): { value?: unknown; problem?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `This is no JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
