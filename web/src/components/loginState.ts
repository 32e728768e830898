/** Somebody is about to be let in by what they are making: until they have seen it, nobody asks them who they are. */
import { create } from "zustand";

export const useEntering = create<{ isEntering: boolean }>(() => ({ isEntering: false }));

export const setEntering = (isEntering: boolean) => useEntering.setState({ isEntering });
