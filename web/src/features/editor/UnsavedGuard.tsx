import { useBlocker, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Confirm } from "@/components/Confirm";

/**
 * Ask for confirmation before leaving the editor with unsaved changes. The browser stores the draft; if it cannot, it
 * also asks before the page is closed. Once the user has confirmed, further redirects do not ask again.
 */
export function UnsavedGuard({ isChanged, isKept }: { isChanged: boolean; isKept: boolean }) {
  const { t } = useTranslation();
  const router = useRouter();
  const [isAsking, ask] = useState(false);
  const answer = useRef<(stays: boolean) => void>(() => undefined);
  const isLeaving = useRef(false);
  useBlocker({
    shouldBlockFn: ({ current, next }) => {
      if (!isChanged || isLeaving.current || current.pathname === next.pathname) return false;
      ask(true);
      // Navigating back while the dialog is open replaces the pending navigation; its promise stays unresolved.
      return new Promise<boolean>((resolve) => {
        answer.current = resolve;
      });
    },
    enableBeforeUnload: () => isChanged && !isKept,
  });
  const arrive = () => {
    isLeaving.current = false;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the handler does not depend on the render
  useEffect(() => router.subscribe("onResolved", arrive), [router]);
  useEffect(() => () => answer.current(false), []);
  if (!isAsking) return null;
  return (
    <Confirm
      title={t("editor.leave")}
      about={t(isKept ? "editor.leaveAbout" : "editor.leaveAboutUnkept")}
      confirmLabel={t("editor.leaveConfirm")}
      action={async () => {
        isLeaving.current = true;
        answer.current(false);
      }}
      onClose={() => {
        answer.current(true);
        ask(false);
      }}
    />
  );
}
