import { useMutation } from "@tanstack/react-query";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { DialogActions } from "./DialogActions";
import { ErrorMessage } from "./StatusMessage";

/** Ask before an action that cannot be undone. Stays open and shows the error if the action fails. */
export function Confirm(props: {
  title: string;
  about: string;
  /** Label of the button: the action itself, not "OK". */
  confirmLabel: string;
  /** The action loses nothing: the button is not shown as dangerous. */
  isHarmless?: boolean;
  /** Label of the other button, if the action itself is a cancellation. */
  cancelLabel?: string | undefined;
  action: () => Promise<unknown>;
  /** Called after the action has succeeded. */
  onDone?: () => unknown;
  onClose: () => void;
}) {
  const action = useMutation({
    mutationFn: props.action,
    onSuccess: async () => {
      await props.onDone?.();
      props.onClose();
    },
  });
  return (
    <Dialog open onClose={props.onClose} title={props.title} about={props.about}>
      {action.isError ? (
        <div className="mb-3">
          <ErrorMessage error={action.error} />
        </div>
      ) : null}
      <DialogActions onClose={props.onClose} cancelLabel={props.cancelLabel}>
        <Button
          kind={props.isHarmless ? "primary" : "danger"}
          disabled={action.isPending}
          onClick={() => action.mutate()}
        >
          {props.confirmLabel}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
