import { chosen } from "../parts/format";

/** What the policy of an asset asks for, in a few words: an age, or a time by which it is made. */
export function policyText(definition: unknown): string | undefined {
  const { freshness } = definition as { freshness?: { max_lag_ms?: number; cron?: string; timezone?: string; warn_before_ms?: number } };
  if (freshness == null) return undefined;
  const warns = freshness.warn_before_ms === undefined || freshness.warn_before_ms === 0 ? "" : `, warns ${chosen(freshness.warn_before_ms)} before`;
  const age = freshness.max_lag_ms === undefined ? undefined : `at most ${chosen(freshness.max_lag_ms)} old`;
  if (freshness.cron === undefined) return age === undefined ? undefined : age + warns;
  return `${age === undefined ? "due by" : `${age} at`} ${freshness.cron}${freshness.timezone === undefined ? "" : ` ${freshness.timezone}`}${warns}`;
}
