import { useEffect } from "react";
import { isolated } from "@/i18n/isolated";

const APP = "Pointsman";

/** Set the document title; undefined leaves it unchanged while the title is loading. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    if (title === undefined) return;
    document.title = `${isolated(title)} · ${APP}`;
    return () => {
      document.title = APP;
    };
  }, [title]);
}
