import { date, relative, shortTime, utc } from "./format";

const SHOWN = { date, relative, time: shortTime } as const;

/** A moment in the viewer's zone, with UTC on hover. */
export function Time({ at, as = "time" }: { at: string; as?: keyof typeof SHOWN }) {
  return (
    <time dateTime={at} title={utc(at)}>
      {SHOWN[as](at)}
    </time>
  );
}
