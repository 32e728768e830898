import { useEffect } from "react";
import { isolated } from "@/i18n/isolated";

const APP = "Pointsman";

/** What the tab and the history of the browser call this page; nothing while it is not known yet. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    if (title === undefined) return;
    document.title = `${isolated(title)} · ${APP}`;
    return () => {
      document.title = APP;
    };
  }, [title]);
}
