import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useTitle } from "./useTitle";

export function NotFound() {
  const { t } = useTranslation();
  useTitle(t("notFound.title"));
  return (
    <div className="mx-auto max-w-lg p-10 text-center">
      <h1 className="text-lg font-semibold">{t("notFound.title")}</h1>
      <Link to="/workflows" className="mt-3 inline-flex min-h-6 items-center text-accent underline">
        {t("notFound.back")}
      </Link>
    </div>
  );
}
