//! An item's value: in one piece behind its key, or in pieces.

use std::mem::MaybeUninit;

use super::{PIECE_HEADER, Shape};
use crate::memory::arena::{Address, Arena, WORD};
use crate::store::{Placement, Store};

impl<P: Placement> Store<P> {
    /// The address of piece `index` of a large item.
    pub fn piece(&self, head: Address, shape: &Shape, index: usize) -> Address {
        self.arena.piece(head, shape, index)
    }

    /// Writes into the value of an item that the caller owns.
    #[inline(always)]
    pub fn write_value(&self, address: Address, shape: &Shape, offset: usize, bytes: &[u8]) {
        match shape.piece {
            None => self
                .arena
                .write(address, shape.value_start() + offset, bytes),
            Some(piece) => self.write_pieces(address, shape, piece, offset, bytes),
        }
    }

    fn write_pieces(
        &self,
        head: Address,
        shape: &Shape,
        piece: usize,
        mut offset: usize,
        mut bytes: &[u8],
    ) {
        while !bytes.is_empty() {
            let within = offset % piece;
            let (now, later) = bytes.split_at(bytes.len().min(piece - within));
            let address = self.piece(head, shape, offset / piece);
            self.arena.write(address, PIECE_HEADER + within, now);
            offset += now.len();
            bytes = later;
        }
    }

    /// Reads from the value of an item: see [`Arena::read_value`].
    #[inline(always)]
    pub fn read_value(
        &self,
        address: Address,
        shape: &Shape,
        offset: usize,
        into: &mut [MaybeUninit<u8>],
    ) -> bool {
        self.arena.read_value(address, shape, offset, into)
    }
}

impl Arena {
    /// The address of piece `index` of a large item.
    pub fn piece(&self, head: Address, shape: &Shape, index: usize) -> Address {
        Address(self.load(head, shape.pieces_start() / WORD + index))
    }

    /// Reads from the value of an item. False if a length led beyond the arena.
    #[inline(always)]
    pub fn read_value(
        &self,
        address: Address,
        shape: &Shape,
        offset: usize,
        into: &mut [MaybeUninit<u8>],
    ) -> bool {
        #[cfg(all(debug_assertions, not(loom)))]
        super::read_hook::reading();
        match shape.piece {
            None => self.read(address, shape.value_start() + offset, into),
            Some(piece) => self.read_pieces(address, shape, piece, offset, into),
        }
    }

    fn read_pieces(
        &self,
        head: Address,
        shape: &Shape,
        piece: usize,
        mut offset: usize,
        into: &mut [MaybeUninit<u8>],
    ) -> bool {
        let mut whole = true;
        let mut rest = into;
        while !rest.is_empty() {
            let within = offset % piece;
            let (now, later) = rest.split_at_mut(rest.len().min(piece - within));
            let address = self.piece(head, shape, offset / piece);
            whole &= self.read(address, PIECE_HEADER + within, now);
            offset += now.len();
            rest = later;
        }
        whole
    }
}
