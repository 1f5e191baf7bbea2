// Pictures of the navigation: one stroke, 18 px.
import type { ReactNode } from "react";

const icon = (path: ReactNode) => (
  <svg width="18" height="18" viewBox="0 0 18 18" fill="none" stroke="currentColor" strokeWidth="1.5" aria-hidden="true">
    {path}
  </svg>
);

export const icons = {
  home: icon(<path d="M3 8.200 9 3l6 5.200V15h-4v-4H7v4H3z" />),
  assets: icon(<path d="m9 2.500 6 3.200v6.600l-6 3.200-6-3.200V5.700zM3 5.700l6 3.300 6-3.300M9 9v6.500" />),
  runs: icon(<path d="M5 3.500 14 9l-9 5.500z" />),
  backfills: icon(<path d="M3 3.500h5v5H3zM10 3.500h5v5h-5zM3 10.500h5v4H3zM10.500 11h4v3h-4z" />),
  automation: icon(<path d="M9 2.500a6.500 6.500 0 1 1 0 13 6.500 6.500 0 0 1 0-13zM9 5.500V9l2.500 1.800" />),
  quarantine: icon(<path d="m9 2.500 5.500 2V9c0 3.300-2.500 5.400-5.500 6.500C6 14.400 3.500 12.300 3.500 9V4.500z" />),
  sql: icon(<path d="M3.500 5c0-1.100 2.500-2 5.500-2s5.500.900 5.500 2-2.500 2-5.500 2-5.500-.900-5.500-2zm0 0v8c0 1.100 2.500 2 5.500 2s5.500-.900 5.500-2V5m-11 4c0 1.100 2.500 2 5.500 2s5.500-.900 5.500-2" />),
  settings: icon(<path d="M3 5.500h7m4 0h1M3 12.500h1m4 0h7M12 3.500v4M6 10.500v4" />),
  search: icon(<path d="M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3zm3.600 8.600L15 15" />),
  moon: icon(<path d="M14.500 10.500A6 6 0 0 1 7.500 3.500a6 6 0 1 0 7 7z" />),
};
