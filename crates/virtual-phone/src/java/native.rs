//! Data of a Java heap outside of it, and its cleanup: bitmaps with their native memory and
//! cleaners, finalizers, thread-local variables.

use super::framework::Skeleton;
use super::heap::{Obj, Type, Value};
use super::pictures::{Picture, PictureFormat, draw};
use super::structures::Bitmap;

/// Size in bytes that `NativeAllocationRegistry` adds to a bitmap's pixels.
const BITMAP_EXTRA_BYTES: i64 = 32;
/// Bit 0 of a registry's size since Android 12: the memory is from malloc.
const MALLOCED: i64 = 1;

impl Skeleton<'_> {
    /// Adds a bitmap whose pixels are in native memory, with its cleaner.
    pub(super) fn bitmap(&mut self, width: u32, height: u32, picture: Picture) -> Bitmap {
        let android = self.inputs.android;
        let count = self.bitmaps.len() as i64;
        let native_pointer = -0x4bff_ff86_0000_0000 + count * 0x480;
        let object = self.b.object("android.graphics.Bitmap mNativePtr mWidth mHeight mDensity=420 mRequestPremultiplied=true", &[Value::from(native_pointer), width.into(), height.into()]);
        if android >= 16 {
            // The process, the storage (1: heap) and a count.
            let id = i64::from(self.inputs.pid) * 10_000_000 + 1_000_000 + count;
            self.b.fill(object, "mId mSourceId=-1", &[id]);
        }
        let pixels = i64::from(width) * i64::from(height) * 4;
        self.native(object, pixels + BITMAP_EXTRA_BYTES, native_pointer);
        let bitmap = Bitmap {
            object,
            native_pointer,
            width,
            height,
            picture,
        };
        self.bitmaps.push(bitmap);
        bitmap
    }

    /// Adds a picture of every bitmap to the dump, as `am dumpheap -b` does.
    pub(super) fn draw_bitmaps(&mut self, format: PictureFormat) {
        let all = self.bitmaps.clone();
        let count = all.len();
        let mut buffers: Vec<Option<Obj>> = Vec::new();
        for bitmap in &all {
            let picture = draw(bitmap.picture, bitmap.width, bitmap.height, format);
            buffers.push(Some(self.b.bytes(picture)));
        }
        let natives = all.iter().flat_map(|b| b.native_pointer.to_be_bytes());
        let natives = self.b.primitives(Type::Long, natives.collect());
        let buffers = self.b.array("byte[][]", buffers);
        let data = self.b.object(
            "android.graphics.Bitmap$DumpData buffers natives count max format",
            &[
                Value::from(buffers),
                natives.into(),
                count.into(),
                count.into(),
                format.number().into(),
            ],
        );
        self.b.set_static("android.graphics.Bitmap.dumpData", data);
    }

    /// Registers native memory that is freed together with `referent`.
    pub(super) fn native(&mut self, referent: Obj, bytes: i64, pointer: i64) -> Obj {
        let malloced = MALLOCED * i64::from(self.inputs.android >= 12);
        let b = &mut self.b;
        let registry = b.object(
            "libcore.util.NativeAllocationRegistry size freeFunction=0x7a6c2e314000",
            &[bytes & !MALLOCED | malloced],
        );
        let thunk = b.object(
            "libcore.util.NativeAllocationRegistry$CleanerThunk this$0 nativePtr",
            &[registry.into(), Value::from(pointer)],
        );
        let cleaner = b.object(
            "sun.misc.Cleaner referent thunk next",
            &[Some(referent), Some(thunk), self.newest_cleaner],
        );
        if let Some(before) = self.newest_cleaner.replace(cleaner) {
            b.set(before, "prev", cleaner);
        }
        cleaner
    }

    /// Registers the finalizer of an object.
    pub(super) fn finalizable(&mut self, referent: Obj) {
        let b = &mut self.b;
        let reference = b.object(
            "java.lang.ref.FinalizerReference referent next",
            &[Some(referent), self.newest_finalizer],
        );
        if let Some(before) = self.newest_finalizer.replace(reference) {
            b.set(before, "prev", reference);
        }
    }

    /// Sets a thread's thread-local variables.
    pub(super) fn thread_locals(&mut self, thread: Obj, locals: &[(Obj, Obj)]) {
        let b = &mut self.b;
        let entry = "java.lang.ThreadLocal$ThreadLocalMap$Entry referent value";
        let entries = locals
            .iter()
            .map(|(local, value)| Some(b.object(entry, &[*local, *value])));
        let mut entries: Vec<Option<Obj>> = entries.collect();
        entries.resize(16, None);
        let table = b.array("java.lang.ThreadLocal$ThreadLocalMap$Entry[]", entries);
        let map = b.object(
            "java.lang.ThreadLocal$ThreadLocalMap table size",
            &[Value::from(table), locals.len().into()],
        );
        b.set(thread, "threadLocals", map);
    }
}
